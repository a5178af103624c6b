"""Writes what brokers on several hosts or in containers need: configuration, secret, certificates, one user.

    python deploy/prepare.py deploy/network                            # b1, b2 and b3, for the Compose file
    python deploy/prepare.py network --brokers roof=10.0.0.1 cellar=10.0.0.2

Every broker reads the same configuration; each host needs the certificate and key of its own broker only. The
private key of the authority belongs on no host, so it is beside the folder, in `FOLDER-authority.key`; keep
it for the next certificate. Brokers listen on all addresses of their host or container, ask every client for
a name and password, and encrypt what they say to one another. What is there already is left as it is, so that
this can be run again with one more broker.
"""

from __future__ import annotations

import argparse
import datetime as dt
import ipaddress
import itertools
import os
import secrets
import sys
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sojourn.errors import SojournError
from sojourn.live.apart import why_not_apart
from sojourn.live.brokers.admission import hash_password
from sojourn.live.config import at_folder, read_config
from sojourn.live.links.secret import write_secret
from sojourn.live.templates import copies_for

YEARS = 2
SERVICES = ("sojourn-clients",)
"""What clients may call any broker: the Service of the Kubernetes manifest."""
UNQUOTED = {'"', "\\"}
"""What cannot stand in the texts of a configuration as it is."""
HEAD = """\
# Made by deploy/prepare.py; every broker reads this file. `sojourn init` writes one that explains more keys.
links = [{links}]

[mobility]
# How many other brokers hold a copy of each one. With two brokers each would wait while the other is away.
copies = {copies}

[network]
secret = "network.secret"
control = "{control}"

[security]
anonymous = false

[tls]
certificate = "certificates/{{broker}}.pem"
key = "certificates/{{broker}}.key"
authority = "certificates/authority.pem"

[[users]]
name = "operator"
password = "{password}"
"""
BROKER = """
[[brokers]]
name = "{name}"
listen = "0.0.0.0:1883"
listen_tls = "0.0.0.0:8883"
peers = "{host}:7883"
seats = "{host}:6883"
metrics = "0.0.0.0:9883"
store = "{stores}/{name}"
"""
PAGE = """\
page = "0.0.0.0:8080"
page_password = "{password}"
"""


def folder_of(text: str) -> Path:
    """Return the folder that is named; an empty name would be the folder that one is in."""
    if not text:
        raise argparse.ArgumentTypeError("the folder has no name; `.` is the one that you are in")
    return Path(text)


def main() -> None:
    """Write the folder, and tell the password once."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=folder_of, help="where to write")
    parser.add_argument(
        "--brokers", nargs="+", default=["b1", "b2", "b3"], metavar="NAME[=HOST]",
        help="the brokers, linked in a line in this order, and where others reach them",
    )  # fmt: skip
    parser.add_argument("--stores", default="/var/lib/sojourn", help="the folder of stores on every host")
    parser.add_argument(
        "--control", default="/run/sojourn/control", help="the folder where operators speak to brokers"
    )
    asked = parser.parse_args()
    pairs = [(name, host or name) for name, _, host in (one.partition("=") for one in asked.brokers)]
    hosts = dict(pairs)
    if len(hosts) < len(pairs):
        twice = next(name for name in hosts if [one for one, _ in pairs].count(name) > 1)
        parser.error(f"the broker {twice!r} is named twice; name each once, with its host after an =")
    try:
        check(asked.folder, hosts, asked.stores, asked.control)
    except (SojournError, ValueError) as error:
        parser.error(str(error))
    os.umask(0o077)
    (asked.folder / "certificates").mkdir(parents=True, exist_ok=True)
    write_secret(asked.folder / "network.secret")
    certify(asked.folder / "certificates", beside(asked.folder), hosts)
    file = asked.folder / "network.toml"
    if file.exists():
        print(f"prepare: {file} is there and stays; add new brokers and links to it by hand", file=sys.stderr)
        return
    password = secrets.token_urlsafe(12)
    file.write_text(configuration(hosts, hash_password(password), asked.stores, asked.control))
    print(f"prepare: wrote {file}")
    print(f"prepare: clients log in as operator with the password {password}, which opens the page too")


def check(folder: Path, hosts: dict[str, str], stores: str, control: str) -> None:
    """Refuse names, hosts and folders that brokers, certificates or this program cannot use."""
    for name, host in hosts.items():
        if UNQUOTED & {*name, *host}:
            raise ValueError(f"the broker {name!r} on {host!r} has a quote or a \\ in its name or host")
        try:
            _named(name)
            _host(host)
        except ValueError as error:
            raise ValueError(f"no certificate can name the broker {name!r} on {host!r}: {error}") from None
        if ":" in host and isinstance(_host(host), x509.DNSName):
            raise ValueError(
                f"the host of {name!r} is {host!r}, and should be a name or an address without a port"
            )
    text = configuration(hosts, "", stores, control)
    why = why_not_apart(at_folder(read_config(text, str(folder / "network.toml")), folder))
    if why:
        raise ValueError(why)
    for one in (folder, *folder.absolute().parents):
        if one.exists():
            if not one.is_dir() or not os.access(one, os.W_OK):
                raise ValueError(f"the folder {folder} cannot be written: {one} is no folder, or not yours")
            return


def configuration(hosts: dict[str, str], password: str, stores: str, control: str) -> str:
    """The file that all brokers read."""
    names = list(hosts)
    links = ", ".join(f'["{one}", "{other}"]' for one, other in itertools.pairwise(names))
    text = HEAD.format(links=links, control=control, password=password, copies=copies_for(len(names)))
    for number, (name, host) in enumerate(hosts.items()):
        text += BROKER.format(name=name, host=host, stores=stores)
        text += PAGE.format(password=password) if number == 0 else ""
    return text


def beside(folder: Path) -> Path:
    """Where the key of the authority is: not in the folder, which goes to every host."""
    folder = folder.resolve()
    return folder.with_name(f"{folder.name}-authority.key")


def certify(folder: Path, authority_file: Path, hosts: dict[str, str]) -> None:
    """Make an authority, and a certificate of it for each broker that has none."""
    authority_key, authority = _authority(folder, authority_file)
    for name, host in hosts.items():
        if (folder / f"{name}.pem").exists():
            continue
        key = ec.generate_private_key(ec.SECP256R1())
        own = dict.fromkeys((name, host, "localhost", "127.0.0.1", *SERVICES))
        alternatives = [_host(one) for one in own]
        certificate = (
            _begun(name, authority.subject, key.public_key())
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .sign(authority_key, hashes.SHA256())
        )
        _write(folder / f"{name}.key", folder / f"{name}.pem", key, certificate)


def _authority(folder: Path, file: Path) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    if (folder / "authority.key").exists():  # where an earlier release wrote it
        (folder / "authority.key").rename(file)
    if file.exists():
        key = serialization.load_pem_private_key(file.read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey), "this program made the key"
        return key, x509.load_pem_x509_certificate((folder / "authority.pem").read_bytes())
    key = ec.generate_private_key(ec.SECP256R1())
    name = _named("authority of this network")
    certificate = (
        _begun("authority of this network", name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    _write(file, folder / "authority.pem", key, certificate)
    return key, certificate


def _begun(subject: str, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(subject))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=365 * YEARS))
    )


def _named(subject: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write(
    key_file: Path, file: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate
) -> None:
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


if __name__ == "__main__":
    main()

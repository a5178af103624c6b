# Every target sets up what it needs; `make` alone lists the targets.
.DEFAULT_GOAL := help
BIN := .venv/bin
# Where this is set, every process that a test or the demonstration starts would compile all it loads anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup setup-broker setup-demo check test test-slow fuzz soak soak-stream demo docs reproduction wheel bench sumo ns3 clean

help:  ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 12

setup:  ## make .venv with everything, and see to Java 17+
	@scripts/setup

setup-broker:  ## make .venv with what clients and brokers need (75 MB, and 38 for uv)
	@scripts/setup broker

setup-demo:
	@scripts/setup demo

check: setup  ## ruff, mypy --strict, import directions, wheel and source archive
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_imports.py tests/test_package.py

# Tests of brokers wait more than they work, so that four processes keep two cores busy.
test: setup  ## the test suite
	$(BIN)/python -m pytest -n 4 --dist worksteal

test-slow: setup  ## the tests that take minutes
	$(BIN)/python -m pytest -m slow

fuzz: setup  ## a million mutated filters through the parser, and a million mutated packets to a broker
	$(BIN)/python scripts/fuzz_filters.py --count 1000000
	$(BIN)/python scripts/fuzz_mqtt.py --count 1000000

# SOAK='--seconds 60' makes it short; SOAK=--delete-stores takes the stores too.
soak: setup  ## kill -9 every broker of six in turn for five minutes, and look for every acknowledged event
	$(BIN)/python scripts/kill_brokers.py $(SOAK)

# STREAM='--seconds 60 --rate 200 --kills 1' makes it short.
soak-stream: setup  ## kill -9 a Spark query three times in ten minutes of 2,000 events/s, and look for every event
	$(BIN)/python scripts/kill_stream.py $(STREAM)

demo: setup-demo  ## see the system at work
	$(BIN)/sojourn demo

reproduction: setup  ## write docs/reproduction.md from the results of `sojourn reproduce all --out RESULTS`
	$(BIN)/python scripts/docs/reproduction.py $(or $(RESULTS),results)

docs: setup  ## build the documentation into build/docs, from pages and from code
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "Open build/docs/index.html"

wheel:  ## install the wheel alone in a clean environment and measure broker and client at work (a minute)
	@scripts/python scripts/try_wheel.py

bench: setup  ## every benchmark, as tables
	$(BIN)/sojourn bench all

# SUMO='--seeds 1 --duration 150' makes it short.
sumo: setup  ## add SUMO, have it make traffic, and run every scheme on it (a minute or two)
	@$(BIN)/python -m ensurepip >/dev/null 2>&1 || true
	$(BIN)/python -m pip install --quiet 'eclipse-sumo==1.28.0'
	$(BIN)/python scripts/sumo_traffic.py --out out/sumo $(SUMO)
	@echo "What predictions save in this city: sojourn bench predictions"
	@echo "One run on a file of SUMO's: sojourn simulate manet --map city:1050:350 --movement out/sumo/1/fcd.xml --warmup-s 60 --duration-s 300"

# NS3='--duration 60 --sides 800' makes it short.
ns3: setup  ## our AODV and radio beside ns-3's at three densities, 900 s each (some 15 minutes)
	@$(BIN)/python -m ensurepip >/dev/null 2>&1 || true
	$(BIN)/python -m pip install --quiet 'ns3==3.44.post0'
	$(BIN)/python scripts/compare_ns3.py --shipped $(NS3)

clean:  ## remove what the targets made
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache build out

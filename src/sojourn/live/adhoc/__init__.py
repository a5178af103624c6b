"""Devices that meet without a broker, as processes on one network segment (paper 003, section 3.1).

`adhoc.election` decides everything; here are its senses and hands:

| file | what it does |
| --- | --- |
| `device.py` | one device: tells the core what happens, writes its notes, does what it wants |
| `running.py` | a device as a process, and the file that says how it stands |
| `air.py` | what is said on the segment: datagrams to all, streams to one |
| `segment.py` | who is on the segment: a multicast group, or a list of addresses |
| `notebook.py` | the custody log: notes that outlive the process |
| `door.py` | the device's own broker, for any MQTT client |
| `fixed.py` | the fixed network, as an ordinary client finds it |
| `carrying.py` | an MQTT event as the core carries it |
"""

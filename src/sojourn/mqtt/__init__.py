"""MQTT 5 as a pure core: packets and time in, packets and facts for the broker out."""

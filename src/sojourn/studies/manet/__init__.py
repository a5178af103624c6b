"""Publish/subscribe without infrastructure at speed, over AODV and GPSR (paper 004)."""

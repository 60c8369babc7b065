"""Processes beside this one: worker processes with one protocol, their limits, and other people's programs."""

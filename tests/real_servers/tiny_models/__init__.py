"""Models of random weights, under 3 MB, that real servers load; made by the Python of a server's environment.

What they say is noise; start, health, errors, limits and usage of the server around them are real.
"""

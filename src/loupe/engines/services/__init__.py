"""Services over HTTP that a profile describes: what is sent, where the text stands, what errors mean."""

"""The jobs: everything that needs a cluster."""

__version__ = "0.1.0"
"""Stored with every stage; a zip on a cluster has no package metadata to ask."""

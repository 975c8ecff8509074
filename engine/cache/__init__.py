"""Prefixes that outlive their request: pages of keys and values, and recurrent states, on the device, in RAM
and on disk.

A prefix is known by its tokens alone, page after page; `snapshot.Snapshot` is one taken out of a model, which
a model with the same fingerprint takes in again.
"""

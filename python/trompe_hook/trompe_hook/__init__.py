"""The Python side of an emulated process; see `after_import` for the order of events.

Absent on purpose: anything that changes what the user's script computes or
prints. The package observes PyTorch and hands facts to the preloaded library. Only
in a distributed job of which some ranks do not exist does it also answer for those
(`ranks`).
"""

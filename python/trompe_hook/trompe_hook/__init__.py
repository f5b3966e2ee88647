"""The Python side of an emulated process; see `after_import` for the order of events.

Absent on purpose: anything that changes what the user's script computes or
prints. The package only observes PyTorch and hands facts to the preloaded library.
"""

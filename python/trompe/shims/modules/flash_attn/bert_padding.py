"""Taking padding out of a batch and putting it back."""

import torch
import torch.nn.functional as F


def index_first_axis(tensor, indices):
    """Rows of a tensor."""
    return tensor[indices]


def unpad_input(hidden_states, attention_mask, unused_mask=None):
    """The rows that are no padding, their places, cumulative lengths, the longest, and the lengths."""
    mask = attention_mask if unused_mask is None else attention_mask + unused_mask
    lengths = mask.sum(dim=-1, dtype=torch.int32)
    used = attention_mask.sum(dim=-1, dtype=torch.int32)
    indices = torch.nonzero(mask.flatten(), as_tuple=False).flatten()
    cumulative = F.pad(torch.cumsum(lengths, dim=0, dtype=torch.int32), (1, 0))
    rows = hidden_states.reshape(-1, *hidden_states.shape[2:])
    return index_first_axis(rows, indices), indices, cumulative, int(lengths.max()), used


def pad_input(hidden_states, indices, batch, seqlen):
    """The batch with its padding again."""
    whole = hidden_states.new_zeros(batch * seqlen, *hidden_states.shape[1:])
    whole[indices] = hidden_states
    return whole.view(batch, seqlen, *hidden_states.shape[1:])

"""BERT masked-language-model training steps (Hugging Face, random weights)."""

import torch
from transformers import BertConfig, BertForMaskedLM

config = BertConfig(num_hidden_layers=4, hidden_size=512, num_attention_heads=8, intermediate_size=2048)
model = BertForMaskedLM(config).cuda().train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

for step in range(4):
    tokens = torch.randint(0, config.vocab_size, (8, 128), device="cuda")
    mask = torch.ones_like(tokens)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(input_ids=tokens, attention_mask=mask, labels=tokens).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.3f}")
print("max_memory_allocated", torch.cuda.max_memory_allocated())

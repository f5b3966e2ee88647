"""T5 sequence-to-sequence training steps (Hugging Face, random weights)."""

import torch
from transformers import T5Config, T5ForConditionalGeneration

config = T5Config(d_model=256, d_ff=1024, d_kv=32, num_layers=3, num_heads=8, decoder_start_token_id=0)
model = T5ForConditionalGeneration(config).cuda().train()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

for step in range(4):
    source = torch.randint(1, config.vocab_size, (4, 96), device="cuda")
    target = torch.randint(1, config.vocab_size, (4, 32), device="cuda")
    loss = model(input_ids=source, labels=target).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.3f}")
print("max_memory_allocated", torch.cuda.max_memory_allocated())

"""A two-layer LSTM language model (cuDNN's recurrent kernels)."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(10000, 256)
        self.lstm = torch.nn.LSTM(256, 512, num_layers=2, dropout=0.2, batch_first=True)
        self.head = torch.nn.Linear(512, 10000)

    def forward(self, tokens):
        hidden, _ = self.lstm(self.embedding(tokens))
        return self.head(hidden)


model = Model().cuda()
optimizer = torch.optim.Adam(model.parameters())

for step in range(4):
    tokens = torch.randint(0, 10000, (16, 65), device="cuda")
    logits = model(tokens[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.3f}")
print("max_memory_allocated", torch.cuda.max_memory_allocated())

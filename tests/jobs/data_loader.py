"""A data loader with worker processes and pinned memory, started after CUDA."""

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        return torch.full((32,), float(index)), index % 10


def main():
    torch.zeros(1, device="cuda")
    model = torch.nn.Linear(32, 10).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Squares(), batch_size=16, num_workers=2, pin_memory=True, persistent_workers=True)
    seen = 0
    for epoch in range(2):
        for features, labels in loader:
            if not features.is_pinned():
                raise SystemExit("the batch is not in pinned memory")
            x = features.to("cuda", non_blocking=True)
            y = labels.to("cuda", non_blocking=True)
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            # What was uploaded reads back as it was.
            seen += int(y.cpu().sum())
        print(f"epoch {epoch} loss {loss.item():.3f}")
    expected = 2 * sum(index % 10 for index in range(96))
    if seen != expected:
        raise SystemExit(f"labels came back wrong: {seen} instead of {expected}")
    print("max_memory_allocated", torch.cuda.max_memory_allocated())


if __name__ == "__main__":
    main()

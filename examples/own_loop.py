"""Hard negatives in a loop of your own: a two-tower model, with PyTorch and nothing of RecBole."""

import numpy as np
import scipy.sparse as sp
import torch

import recbole_hns as hns

n_users, n_items, d = 500, 3000, 8
rng = np.random.default_rng(1)
taste, kind = rng.normal(size=(n_users, 4)), rng.normal(size=(n_items, 4))
liking = 2 * taste @ kind.T + rng.gumbel(size=(n_users, n_items))
users = np.repeat(np.arange(n_users), 30)
items = np.argsort(-liking, axis=1)[:, :30].ravel()  # what each user took
held = rng.random(len(users)) < 0.1
taken = sp.csr_matrix((np.ones((~held).sum()), (users[~held], items[~held])), (n_users, n_items))
pairs = torch.from_numpy(np.stack(taken.nonzero()).astype(np.int64)).T

for rule in hns.rules.Uniform(), hns.rules.SoftmaxV(rho=0.3):
    world, loss = hns.World(taken, seed=1), hns.losses.BPR()
    pool = hns.pools.Uniform().open(world)
    torch.manual_seed(1)
    vectors = [0.1 * torch.randn(n, d) for n in taken.shape]
    tower_u, tower_i = (torch.nn.Embedding.from_pretrained(v, freeze=False) for v in vectors)
    parameters = [tower_u.weight, tower_i.weight]
    optimizer = torch.optim.Adam(parameters, lr=0.01, weight_decay=1e-4)
    for epoch in range(20):
        world.start_epoch(epoch)
        for user, item in (batch.T for batch in pairs[torch.randperm(len(pairs))].split(1024)):
            query = hns.DotQuery(tower_u(user), tower_i.weight, item)
            optimizer.zero_grad()
            hns.step(query, pool.draw(user, N=100), rule, loss).backward()
            optimizer.step()

    scores = (tower_u.weight @ tower_i.weight.T).detach().numpy()
    scores[users[~held], items[~held]] = -np.inf
    top = np.argsort(-scores, axis=1)[:, :20]
    found = (top[users[held]] == items[held, None]).any(axis=1).mean()
    print(f"{type(rule).__name__}: {found:.3f} of the held-out pairs are in the top 20")

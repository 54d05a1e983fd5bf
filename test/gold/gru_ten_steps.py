#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Losses of ten training steps of a GRU from fixed weights, by a program that shares nothing with ours: float64 numpy,
gradients by the autograd package (PyPI: numpy 1.26 or later, autograd 1.7 or later). Its output stands in
gru.c. The weights, inputs and targets are formulas, so that both sides can make them."""
import autograd.numpy as np
from autograd import grad

I, H, O, T, M = 3, 16, 5, 12, 8
rows = H + I + 1
count = np.arange(rows * 3 * H)
gates = (0.4 * np.sin(1.3 * count + 0.5)).reshape(rows, 3 * H)
b_nh = 0.4 * np.sin(1.3 * np.arange(H) + 0.9)
out = (0.4 * np.sin(1.1 * np.arange(rows * O) + 0.2)).reshape(rows, O)
t, m = np.meshgrid(np.arange(T), np.arange(M), indexing="ij")
x = np.sin(0.9 * t[..., None] + 1.7 * m[..., None] + 2.3 * np.arange(I))
want = np.cos(0.5 * t + 0.3 * m)[..., None] * (np.arange(O) + 1) / 5
level = np.array([0.1, 0.3, 0.5, 0.7, 0.9])


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def loss(p):
    gates, b_nh, out = p
    h = np.zeros((M, H))
    total = 0.0
    for k in range(T):
        x1 = np.concatenate([x[k], np.ones((M, 1))], axis=1)
        gh, gx = h @ gates[:H], x1 @ gates[H:]
        r = sigmoid(gh[:, :H] + gx[:, :H])
        z = sigmoid(gh[:, H:2 * H] + gx[:, H:2 * H])
        n = np.tanh(gx[:, 2 * H:] + r * (gh[:, 2 * H:] + b_nh))
        h = (1 - z) * n + z * h
        e = want[k] - (np.concatenate([h, x1], axis=1) @ out)
        total = total + np.sum(np.maximum(level * e, (level - 1) * e))
    return total / (T * M * O)


p = [gates, b_nh, out]
mom = [np.zeros_like(a) for a in p]
var = [np.zeros_like(a) for a in p]
for step in range(1, 11):
    print(f"{loss(p):.9f}")
    g = grad(loss)(p)
    norm = np.sqrt(sum(np.sum(a * a) for a in g))
    g = [a * min(1.0, 0.05 / norm) for a in g]
    for i in range(3):
        mom[i] = 0.9 * mom[i] + 0.1 * g[i]
        var[i] = 0.999 * var[i] + 0.001 * g[i] ** 2
        step_i = mom[i] / (1 - 0.9 ** step) / (np.sqrt(var[i] / (1 - 0.999 ** step)) + 1e-8)
        p[i] = p[i] - 0.01 * (step_i + 0.01 * p[i])

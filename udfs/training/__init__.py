"""Training: corpora with ground truth → weights of the embedded classifier, or of an encoder. It is the only part that
imports torch as it loads, in `trainable` and `learning`."""

"""The training of a model, which can be killed and go on."""

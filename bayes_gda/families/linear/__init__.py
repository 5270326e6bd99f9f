"""Linear activations: logistic and softmax regression."""

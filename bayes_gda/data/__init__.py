"""From a table to what the models see: data sets, feature maps, sufficient statistics."""

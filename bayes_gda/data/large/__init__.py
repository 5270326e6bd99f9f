"""Tables beyond memory: batches on disk, partitions on a cluster."""

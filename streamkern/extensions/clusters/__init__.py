"""Clusters that a file describes: local, SSH, Slurm, PBS or Kubernetes."""

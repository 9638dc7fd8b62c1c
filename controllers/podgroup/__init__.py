"""PodGroups for plain pods: made for the pods of one owner, or for a pod alone, and removed when idle."""

"""Steps of a scheduling cycle, one a file: enqueue, allocate, backfill, preempt, reclaim.

An action walks queues and jobs and asks the plugins through ``scheduler.framework``; what to prefer
and what to refuse is theirs. Actions do not import plugins.
"""

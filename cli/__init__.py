"""The command line: reads arguments and files, calls the other rooms, prints tables, JSON and pictures.

May import every room; none imports it. Holds no scheduling logic.
"""

"""How policies are asked: session, statement, extension points, registries and configuration.

Merges what plugins answer by Volcano's tier rules; holds no policy of its own. Imports
``scheduler.model``; plugins and actions import this room.
"""

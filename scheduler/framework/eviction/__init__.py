"""Making room for a claimant: who goes, proved sufficient, none of them needlessly.

``desk`` takes claims and carries out those that end in a start; ``victims`` says who is offered, in what
order and in which units; ``search`` picks the cheapest nodes and victims; ``giveback`` returns whoever
is not needed after all. Domains of nodes (network topology) narrow the nodes a search looks at.
"""

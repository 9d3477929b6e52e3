"""What the lectures write and print, held against Regard: their code, their equations, their numbers."""

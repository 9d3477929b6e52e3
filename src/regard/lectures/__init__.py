"""The five lectures as pages: stations with live controls, worked numbers, named bugs and checked homework."""

"""`regard model`: look at a model's configuration before it exists."""

import typer  # noqa: TID251

app = typer.Typer(help="Look at model configurations: presets, knobs, costs, exports.", no_args_is_help=True)

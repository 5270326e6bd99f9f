"""The application: what the commands are hung on, and the options that all of them have."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from bayes_gda._version import __version__
from bayes_gda.cli.commands import config
from bayes_gda.cli.shell import QUIET, USUAL, VERBOSE, Shell, set_loudness
from bayes_gda.errors import DataError

app = typer.Typer(
    name="bayes-gda",
    cls=Shell,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"bayes-gda {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Bayesian classifiers that tell you whether to believe them.

    Exit codes: 0 done, 1 something is red (of diff: there are differences),
    2 wrong input, 130 interrupted.
    """


_EVERY = "Every command"
_Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", rich_help_panel=_EVERY, help="Print only warnings, errors, and rows or JSON."),
]
_Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", rich_help_panel=_EVERY, help="Print each stage and its time on stderr.")
]
_Config = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE.toml",
        show_default=False,
        is_eager=True,
        callback=config.use,
        rich_help_panel=_EVERY,
        help="Take arguments and options from the section of this command; those on the command line go before.",
    ),
]
_SaveConfig = Annotated[
    str | None,
    typer.Option(
        "--save-config",
        metavar="FILE.toml",
        show_default=False,
        rich_help_panel=_EVERY,
        help="Write all arguments and options of this run, for --config.",
    ),
]


def command(**settings: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command, with the options that every command has.

    Parameters
    ----------
    **settings
        Of `typer.Typer.command`.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(
            ctx: typer.Context, quiet: bool, verbose: bool, config_: str | None, save_config: str | None, **given: Any
        ) -> None:
            if quiet and verbose:
                raise DataError("`--quiet` and `--verbose` exclude each other. Leave one out.")
            set_loudness(QUIET if quiet else VERBOSE if verbose else USUAL)
            text = None if save_config is None else config.prepare(save_config, ctx)
            try:
                function(**given)
            except typer.Exit:  # done too, with an answer that is no
                config.save(save_config, text)
                raise
            config.save(save_config, text)

        extra: dict[str, tuple[Any, Any]] = {"quiet": (_Quiet, False), "verbose": (_Verbose, False)}
        extra |= {"config_": (_Config, None), "save_config": (_SaveConfig, None)}
        keyword = inspect.Parameter.KEYWORD_ONLY
        own = [p.replace(kind=keyword) for p in inspect.signature(function).parameters.values()]
        more = [inspect.Parameter(n, keyword, default=value, annotation=kind) for n, (kind, value) in extra.items()]
        context = inspect.Parameter("ctx", keyword, annotation=typer.Context)
        parameters = [context, *own, *more]
        vars(run)["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        app.command(**settings)(run)
        return function

    return register

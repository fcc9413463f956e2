"""Which options a cluster file may give: how much, how many and where, but nothing that runs code.

Options through which Dask would import a module, set an environment variable or run a command are
refused by name.  The others may be written, as they are, into a job script or a command line, so
their values must be plain: words, numbers, and paths with variables in them.  Directives of job
schedulers and options of workers begin with a dash; they must be among those that ask for
resources, accounts and places.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from pathlib import Path

_RUNS_CODE = re.compile(
    r"(\w+_)?(bootstrap|class|cls|command|jupyter|link|module|python|services|shebang|template)"
    r"|(\w+_)?env(iron\w*|_\w+)?|preload\w*|pre_import|job_script_\w+|logging\w*"
    r"|(\w+_)?extra(_args)?|allowed_imports|auth|config|custom_cluster_spec|docker_args"
    r"|extensions|pkcs11_provider|plugins|policies|remote_dask_worker|routes|security_loader"
    r"|job_extra_directives|cluster_options"
)
# No shell makes two words, or a word with a dash before it, of what has this form.
_PLAIN = re.compile(
    r"(?!-)(?:[\w.,:=@%+/~^\[\]-]|(?<=[\w.,:]) (?=\w)|\{\w+\}"
    r"|\$(?!IFS\b)\w+(?![\w-])|\$\{(?!IFS\})\w+\}(?!-))*"
)
# Programs that run beside a job, and files that are copied for it.
_BESIDE = re.compile(r"(pro|epi)logue|stage(in|out)")

_WORD = r"(?:[^\s\"'\\`$#]+|\"[^\"\\`$\r\n]*\"|'[^'\"\\`$\r\n]*')"
_DIRECTIVE = re.compile(rf"(--?[A-Za-z][\w-]*?)(?:(?:=| +|(?=\d)){_WORD})?")
_PBS = "-A -a -c -h -j -k -l -M -m -N -P -p -q -r -V -W"
_DIRECTIVES = {
    "SLURMCluster": "-A -B -b -C -c -d -F -G -H -J -k -L -M -m -N -n -O -p -q -S -s -t -w -x"
    " --account --acctg-freq --begin --clusters --comment --constraint --contiguous --core-spec"
    " --cores-per-socket --cpu-freq --cpus-per-gpu --cpus-per-task --deadline --delay-boot"
    " --dependency --distribution --exclude --exclusive --extra-node-info --gpu-bind --gpu-freq"
    " --gpus --gpus-per-node --gpus-per-socket --gpus-per-task --gres --gres-flags --hint --hold"
    " --kill-on-invalid-dep --licenses --mail-type --mail-user --mcs-label --mem --mem-bind"
    " --mem-per-cpu --mem-per-gpu --mincpus --network --nice --no-kill --no-requeue --nodelist"
    " --nodes --ntasks --ntasks-per-core --ntasks-per-gpu --ntasks-per-node --ntasks-per-socket"
    " --overcommit --oversubscribe --partition --power --priority --profile --qos --requeue"
    " --reservation --signal --sockets-per-node --spread-job --switches --thread-spec"
    " --threads-per-core --time --time-min --tmp --use-min-nodes --wckey",
    "PBSCluster": _PBS,
    "MoabCluster": _PBS,
    "LSFCluster": "-app -alloc_flags -b -B -c -C -cn_cu -cn_mem -D -F -G -g -gpu -H -hl -J -Lp -M"
    " -m -N -n -nnodes -P -p -ptl -q -R -r -rn -S -sla -sp -T -t -U -u -ul -v -W -We -w -x",
}
_OF_WORKERS = {
    *("--dashboard-address", "--lifetime", "--lifetime-stagger", "--nanny-port", "--no-dashboard"),
    *("--resources", "--worker-port"),
}


def refuse_code(path: Path, cluster: str, options: Any, where: str) -> None:
    """Raise ParameterError if options, or those nested in them, could run code.

    Parameters
    ----------
    path : Path
        The file that they are from.
    cluster : str
        The class that they are for.
    options : object
        As YAML yields them.
    where : str
        What they are called in that file.
    """
    if isinstance(options, dict):
        for key, value in options.items():
            name = str(key).replace("-", "_").lower()
            inner = f"{where}.{key}"
            if name == "job_extra_directives":
                _refuse_directives(path, cluster, value, inner)
            elif name == "worker_extra_args":
                _refuse_arguments(path, cluster, value, inner)
            elif any(_RUNS_CODE.fullmatch(part) for part in name.split(".")):
                raise ParameterError(
                    f"{path}: {inner} is not allowed in a cluster file, because it can run code; "
                    f"{_remedy(cluster, where)}."
                )
            else:
                refuse_code(path, cluster, value, inner)
    elif isinstance(options, list | tuple):
        for value in options:
            refuse_code(path, cluster, value, where)
    elif isinstance(options, str):
        _refuse_syntax(path, options, where)


def _refuse_syntax(path: Path, value: str, where: str) -> None:
    plain = _PLAIN.match(value)
    end = plain.end() if plain else 0
    beside = _BESIDE.search(value) if "=" in value else None
    if end < len(value) or beside:
        found = beside[0] if beside else value[end]
        raise ParameterError(
            f"{path}: {where} must be a plain value, but holds {found!r}, which a shell or a job "
            f"scheduler would act on; remove it."
        )


def _refuse_directives(path: Path, cluster: str, directives: Any, where: str) -> None:
    """Raise ParameterError unless every directive is one that asks for resources or a place."""
    known = _DIRECTIVES.get(cluster, "").split()
    for directive in directives if isinstance(directives, list | tuple) else [directives]:
        text = str(directive)
        match = _DIRECTIVE.fullmatch(text)
        if not match or match[1] not in known or _BESIDE.search(text):
            raise ParameterError(
                f"{path}: {where} may hold directives that ask for resources, accounts and places, "
                f"one each, but {text!r} is not allowed in a cluster file; "
                f"{_remedy(cluster, where)}."
            )


def _refuse_arguments(path: Path, cluster: str, arguments: Any, where: str) -> None:
    """Raise ParameterError unless the options of workers say only when and where they serve."""
    for argument in arguments if isinstance(arguments, list | tuple) else [arguments]:
        name, _, value = str(argument).partition("=")
        if not name.startswith("-"):
            value = str(argument)
        elif name not in _OF_WORKERS:
            raise ParameterError(
                f"{path}: {where} may hold {', '.join(sorted(_OF_WORKERS))}, but {name!r} is not "
                f"allowed in a cluster file; {_remedy(cluster, where)}."
            )
        _refuse_syntax(path, value, where)


def _remedy(cluster: str, where: str) -> str:
    """Say where something may be set that a cluster file may not give."""
    own = "set it in your own Dask configuration, ~/.config/dask"
    return own if where.startswith("config") else f"{own}, as streamkern.cluster-options.{cluster}"

"""Allow-list of the options of cluster files: how much, how many, how long, and plain names.

Whoever names a host, an image, an address, a folder or a program in a file can run code in the
account of its reader.  So each cluster class has a table of options about sizes, resources, names
and times, with the form that a value must have; of security, a file may ask for more.  All else is
for files whose author the user trusts, and for the user's own Dask configuration.
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

from streamkern.errors import ParameterError
from streamkern.errors.formatting import printable

OWN_OPTIONS = "streamkern.cluster-options"  # of the user's own configuration


class _Form(NamedTuple):
    """What a value must look like, in words and as a pattern of its text."""

    words: str
    pattern: str


# Values reach job scripts and command lines as they are, so none holds what a shell acts on.
_COUNT = _Form("a whole number", r"\d+")
_AMOUNT = _Form("a number, one with a unit, or null", r"\d[\d.:+-]*(?: ?[A-Za-z]+)?|auto|None")
_SWITCH = _Form("true or false", "True|False")
_SETTING = _Form("a number, one with a unit, true or false", f"{_AMOUNT.pattern}|True|False")
_NAME = _Form("a plain name", r"\w[\w.,+-]*")
_ACCOUNT = _Form("a plain name", r"\w[\w.,+/@-]*")
_BELOW = _Form("a folder below the working one", r"\w[\w.-]*(?:/\w[\w.-]*)*/?")
# Who can write where workers spill can have them run code; these are where they spill anyway.
_SCRATCH = _Form("/tmp or $TMPDIR", r"/tmp|\$TMPDIR|\$\{TMPDIR\}")  # noqa: S108  as named
_LOOPBACK = _Form("127.0.0.1, localhost or ::1", r"127\.0\.0\.1|localhost|::1")
# Of a port alone Dask makes one on all interfaces.
_PAGE = _Form("null or a port of 127.0.0.1", r"None|(?:127\.0\.0\.1|localhost):\d+")
_TLS = _Form("tls", "tls(?:://)?")
_TRUE = _Form("true", "True")
_TLS_1_3 = _Form("1.3", r"1\.3")

_AMOUNT_OF = (
    "accelerator|arch|chunk|core|cpu|cput|depend|exclusive|feature|features|file|gpu|gpus"
    "|group_list|h_rt|h_vmem|host|mem|mem_free|mpiprocs|naccesspolicy|ncpus|ngpus|nodes|ompthreads"
    "|pcput|place|pmem|ppn|pvmem|qos|s_rt|s_vmem|select|umask|virtual_free|vmem|walltime"
)
_EACH = rf"(?:(?:{_AMOUNT_OF})=)?[\w.-]+"
_RESOURCES = _Form("resources such as select=1:ncpus=4", rf"/?(?!-){_EACH}(?:[:,+/]{_EACH})*")
_ARGUMENT = _Form(
    "--no-dashboard, --lifetime, --lifetime-stagger, --nanny-port, --worker-port or --resources,"
    " and their numbers",
    r"--no-dashboard|(?:--(?:lifetime|lifetime-stagger|nanny-port|worker-port|resources)=?)?"
    r"(?:\w+=)?(?:\d[\w.:]*)?",
)

_WORD = r"(?:[^\s\"'\\`$#]+|\"[^\"\\`$\r\n]*\"|'[^'\"\\`$\r\n]*')"


def _directives(options: str = "", pattern: str = "") -> list[_Form]:
    """Return a list's form: directives that are options, each with a word, or match a pattern."""
    named = "|".join(options.split())
    pattern = pattern or rf"(?:{named})(?:(?:=| +|(?<=-[A-Za-z])(?=\d)){_WORD})?"
    return [_Form("directives that ask for resources, accounts and queues, one each", pattern)]


_SLURM = _directives(
    "-A -B -b -C -c -d -F -G -H -J -k -L -M -m -N -n -O -p -q -S -s -t -w -x"
    " --account --acctg-freq --begin --clusters --comment --constraint --contiguous --core-spec"
    " --cores-per-socket --cpu-freq --cpus-per-gpu --cpus-per-task --deadline --delay-boot"
    " --dependency --distribution --exclude --exclusive --extra-node-info --gpu-bind --gpu-freq"
    " --gpus --gpus-per-node --gpus-per-socket --gpus-per-task --gres --gres-flags --hint --hold"
    " --kill-on-invalid-dep --licenses --mail-type --mail-user --mcs-label --mem --mem-bind"
    " --mem-per-cpu --mem-per-gpu --mincpus --network --nice --no-kill --no-requeue --nodelist"
    " --nodes --ntasks --ntasks-per-core --ntasks-per-gpu --ntasks-per-node --ntasks-per-socket"
    " --overcommit --oversubscribe --partition --power --priority --profile --qos --requeue"
    " --reservation --signal --sockets-per-node --spread-job --switches --thread-spec"
    " --threads-per-core --time --time-min --tmp --use-min-nodes --wckey"
)
_LSF = _directives(
    "-app -alloc_flags -b -B -c -C -cn_cu -cn_mem -D -F -G -g -gpu -H -hl -J -Lp -M -m -N -n"
    " -nnodes -P -p -ptl -q -R -r -rn -S -sla -sp -T -t -U -u -ul -v -W -We -w -x"
)
_PBS = _directives(
    pattern=rf"-[lW] ?{_RESOURCES.pattern}|-q ?{_NAME.pattern}|-[AachjkMmNPprV](?: ?[\w.@:,+/-]+)?"
)


def _of(form: _Form, names: str) -> dict[str, Any]:
    return dict.fromkeys(names.split(), form)


_SCHEDULER = (
    _of(_COUNT, "port allowed_failures")
    | _of(_AMOUNT, "idle_timeout worker_ttl")
    | {"host": _LOOPBACK, "dashboard_address": _PAGE, "protocol": _TLS}
)
_WORKER = (
    _of(_COUNT, "n_workers nthreads")
    | _of(_AMOUNT, "memory_limit death_timeout lifetime lifetime_stagger")
    | {"lifetime_restart": _SWITCH, "protocol": _TLS}
)
_LOCAL = (
    _WORKER
    | _of(_COUNT, "threads_per_worker scheduler_port")
    | _of(_PAGE, "dashboard_address worker_dashboard_address")
    | {"name": _NAME, "processes": _SWITCH, "host": _LOOPBACK, "security": _TRUE}
    | {"scheduler_kwargs": _SCHEDULER}
)
_JOBS = (
    _of(_COUNT, "n_workers cores processes")
    | _of(_AMOUNT, "memory walltime death_timeout")
    | _of(_NAME, "name job_name queue interface")
    | {"project": _ACCOUNT, "nanny": _SWITCH, "protocol": _TLS}
    | {"local_directory": _SCRATCH, "log_directory": _BELOW}
    | {"scheduler_options": _SCHEDULER, "worker_extra_args": [_ARGUMENT]}
)
_SPECIFIED = _JOBS | {"resource_spec": _RESOURCES}
_POD = _of(_AMOUNT, "cpu memory ephemeral-storage nvidia.com/gpu amd.com/gpu")
_CLASSES = {
    "LocalCluster": _LOCAL,
    "LocalCUDACluster": _LOCAL | {"device_memory_limit": _AMOUNT},
    "SSHCluster": {"scheduler_options": _SCHEDULER, "worker_options": _WORKER},
    "SLURMCluster": _JOBS
    | {"account": _ACCOUNT, "job_cpu": _COUNT, "job_mem": _AMOUNT, "job_extra_directives": _SLURM},
    "PBSCluster": _SPECIFIED | {"account": _ACCOUNT, "job_extra_directives": _PBS},
    "MoabCluster": _SPECIFIED | {"account": _ACCOUNT, "job_extra_directives": _PBS},
    "LSFCluster": _JOBS
    | {"ncpus": _COUNT, "mem": _AMOUNT, "lsf_units": _NAME, "use_stdin": _SWITCH}
    | {"job_extra_directives": _LSF},
    "SGECluster": _SPECIFIED,
    "OARCluster": _SPECIFIED,
    "HTCondorCluster": _JOBS | {"disk": _AMOUNT},
    # Not the namespace: a cluster that is there is joined, whoever it belongs to.
    "KubeCluster": _of(_AMOUNT, "idle_timeout resource_timeout")
    | {"name": _NAME, "n_workers": _COUNT, "quiet": _SWITCH}
    | {"resources": {"requests": _POD, "limits": _POD}},
}
_OF_ANY = {"n_workers": _COUNT}
_CONFIG = {
    f"{group}.{key}": _SETTING
    for group, keys in {
        "distributed.adaptive": "interval target-duration wait-count",
        "distributed.comm": "retry.count retry.delay.max retry.delay.min timeouts.connect"
        " timeouts.tcp",
        "distributed.deploy": "lost-worker-timeout",
        "distributed.scheduler": "allowed-failures idle-timeout no-workers-timeout work-stealing"
        " work-stealing-interval worker-saturation worker-ttl",
        "distributed.worker": "lifetime.duration lifetime.restart lifetime.stagger"
        " memory.max-spill memory.monitor-interval memory.pause memory.recent-to-old-time"
        " memory.spill memory.target memory.terminate memory.transfer profile.cycle"
        " profile.enabled profile.interval",
        "streamkern": "shard-attempts",
    }.items()
    for key in keys.split()
} | {"distributed.comm.require-encryption": _TRUE, "distributed.comm.tls.min-version": _TLS_1_3}


def refuse_untrusted(
    path: Path, cluster: str, args: list[Any], kwargs: dict[str, Any], config: dict[str, Any]
) -> None:
    """Raise ParameterError if a file says more than it may of a cluster class by itself."""
    own = "set it in your own Dask configuration, ~/.config/dask"
    remedy = f"{own}, as {OWN_OPTIONS}.{cluster}"
    if args:
        raise _refused(path, "args", f"give options by their names in kwargs, or {remedy}")
    _check(path, kwargs, _CLASSES.get(cluster, _OF_ANY), "kwargs", remedy)
    _check(path, config, _CONFIG, "config", own)


def _check(path: Path, value: Any, form: Any, name: str, remedy: str) -> None:
    """Compare a value with its form, a mapping's or list's with those of what is in it."""
    if isinstance(form, dict) and isinstance(value, dict):
        for key, each in value.items():
            _check(path, each, form.get(key), f"{name}.{printable(str(key))[:60]}", remedy)
    elif isinstance(form, list) and isinstance(value, list):
        for each in value:
            _check(path, each, form[0], name, remedy)
    elif not isinstance(form, _Form):
        raise _refused(path, name, remedy)
    elif not isinstance(value, str | int | float | None) or not re.fullmatch(
        form.pattern, str(value)
    ):
        # Without the value, which may be a password.
        raise _refused(path, f"this value of {name}", f"write {form.words}, or {remedy}")


def _refused(path: Path, what: str, remedy: str) -> ParameterError:
    return ParameterError(
        f"{path}: {what} is not allowed in a cluster file, because whoever chooses it could run "
        f"code in your account or open the cluster to others; {remedy}, or, if you trust whoever "
        f"wrote the file with your account, say --trust-cluster-file (in Python "
        f"trust_cluster_file=True)."
    )

# On a cluster: what runs where Snakemake does, and what an earlier run left behind.
import left_jobs
import run_lock

LOCK = Path(".snakemake", "causalrank.lock")


# `--resources runtime=` is the longest time of each submission, and not of them all together.
resource_scopes:
    runtime="local",


# Seconds each, on small tables; and the download, since a cluster's nodes may have no network.
localrules:
    fetch_wheel,
    list_packages,
    gather_packages,
    gather_table,
    gather_combinations,
    gather_lengths,
    compare_verdicts,
    compare_growth,
    summarize_members,
    summarize_tails,
    average_heads,
    average_concentration,
    list_left_cells,
    judge_acceptance,
    judge_claims,
    typeset_claims,
    typeset_by_N,
    typeset_page,
    copy_to_gallery,
    plot_rank_against_d,
    plot_rank_one_softmax,
    plot_singular_value_decay,
    plot_spectral_density,
    plot_against_N,
    plot_baselines,
    plot_growth,
    plot_horizon,
    plot_depth_by_head,
    plot_bound_tightness,
    plot_matrix_against_output,
    plot_two_token,
    plot_running_sum,
    plot_claims,
    plot_concentration,
    plot_tails,
    plot_projection,
    plot_acceptance,
    plot_contrast,
    plot_performance,
    plot_approximation_cost,


def cancel_left_jobs():
    """Cancel what a killed run of this folder left in Slurm's queue: it would write the same files.

    Before the graph is made, since a job removes files when it is cancelled; not in a dry run.
    """
    dry = workflow.output_settings.dryrun or not workflow.is_main_process
    if dry or not left_jobs.PREFIX.exists():
        return
    try:
        run_lock.hold(LOCK)
        left_jobs.cancel_expected()
        run_lock.release()
    except run_lock.AnotherRun:
        pass  # whose jobs these are
    except left_jobs.CannotCancel as error:
        sys.exit(f"error: {error}")


def expect_jobs():
    if workflow.executor_plugin.name == "slurm":
        left_jobs.expect(workflow.executor_settings.jobname_prefix)


def keep_to_allocation():
    """Have Snakemake within a job take the cores that Slurm gave it, and not the node's.

    Where nothing binds a job to its cores, the steps of a batch would run side by side.
    """
    cores = os.environ.get("SLURM_CPUS_ON_NODE")
    if cores and not workflow.is_main_process:
        workflow.register_resource("_cores", int(cores))


keep_to_allocation()
cancel_left_jobs()

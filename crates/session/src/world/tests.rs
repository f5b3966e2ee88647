//! Command lines and the jobs that they start.

use trompe_hardware::resolve;

use super::*;

fn launch(cluster: &str, command: &str) -> Result<Launch, SessionError> {
    let words: Vec<OsString> = command.split_whitespace().map(OsString::from).collect();
    read(&words, &resolve(cluster).unwrap())
}

/// The worker's command as text, with `$` for the job's Python.
fn worker(world: &World) -> String {
    let (front, words) = match &world.worker {
        WorkerCommand::Python(words) => (Some("$"), words),
        WorkerCommand::Program(words) => (None, words),
    };
    let words = words.iter().map(|word| word.to_str().unwrap());
    front.into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(command: &str, expect: Option<(u32, u32, &str)>) {
    let found = launch("dgx-h100:4", command).unwrap();
    let found = found.world.map(|world| (world.size, world.per_node, worker(&world)));
    assert_eq!(
        found,
        expect.map(|(size, per_node, worker)| (size, per_node, worker.to_owned())),
        "{command}"
    );
}

#[track_caller]
fn refused(cluster: &str, command: &str, expect: &str) {
    let error = launch(cluster, command).unwrap_err();
    assert!(error.to_string().contains(expect), "{error}");
    assert!(error.hint().is_some());
}

#[test]
fn torchrun_is_read_as_typed_on_the_cluster() {
    check("torchrun --nproc-per-node 8 train.py --lr 1", Some((32, 8, "$ -u train.py --lr 1")));
    check("torchrun --nproc_per_node=gpu train.py", Some((32, 8, "$ -u train.py")));
    check("torchrun --nnodes=2 --nproc-per-node=4 train.py", Some((8, 4, "$ -u train.py")));
    check("torchrun --nnodes 1:3 --nproc-per-node auto train.py", Some((24, 8, "$ -u train.py")));
    check("torchrun --standalone --nproc-per-node=8 -m pkg.train a", Some((8, 8, "$ -u -m pkg.train a")));
    check("torchrun --no-python --nproc-per-node=8 ./train.sh", Some((32, 8, "./train.sh")));
    check(
        "torchrun --rdzv_backend c10d --rdzv-endpoint=host:29500 --node_rank 1 --nproc-per-node 8 -- t.py",
        Some((32, 8, "$ -u t.py")),
    );
    check("python -m torch.distributed.run --nproc-per-node 8 t.py", Some((32, 8, "$ -u t.py")));
    check("/v/bin/python3 -u /v/bin/torchrun --nproc-per-node 8 t.py", Some((32, 8, "$ -u t.py")));
    check("torchrun t.py", Some((4, 1, "$ -u t.py")));
}

#[test]
fn mpi_and_slurm_are_read() {
    check("mpirun -np 16 python t.py", Some((16, 8, "python t.py")));
    check(
        "mpirun --allow-run-as-root -n 16 -npernode 4 --mca btl tcp python t.py -n 3",
        Some((16, 4, "python t.py -n 3")),
    );
    check("srun -N 4 --ntasks-per-node=8 python t.py", Some((32, 8, "python t.py")));
    check("srun -n32 --label python t.py", Some((32, 8, "python t.py")));
    check("srun -N 4 torchrun --nnodes 4 --nproc-per-node 8 t.py", Some((32, 8, "$ -u t.py")));
    check("mpirun -n 1 python t.py", None);
}

#[test]
fn deepspeed_is_read() {
    check(
        "deepspeed train.py --deepspeed_config c.json",
        Some((32, 8, "$ -u train.py --deepspeed_config c.json")),
    );
    check(
        "deepspeed --num_nodes=2 --num_gpus 4 --master_port 1 --module pkg.t",
        Some((8, 4, "$ -u -m pkg.t")),
    );
    check("python -m deepspeed.launcher.runner --num_gpus 8 t.py", Some((32, 8, "$ -u t.py")));
    check("deepspeed --no_python --num_gpus 2 --num_nodes 1 ./t.sh", Some((2, 2, "./t.sh")));
    refused("dgx-h100:4", "deepspeed --num_gpus 0 t.py", "no number");
    refused("dgx-h100:4", "deepspeed --include host:0 t.py", "names machines");
    refused("dgx-h100:4", "deepspeed", "which script");
}

#[test]
fn other_commands_are_of_one_process() {
    check("python train.py torchrun", None);
    check("python -m train", None);
    check("./train.sh", None);
}

#[test]
fn jobs_that_do_not_fit_are_refused() {
    refused("dgx-h100", "torchrun --nnodes 2 --nproc-per-node 8 t.py", "16 ranks");
    refused("dgx-h100:4", "torchrun --nnodes 2 --nproc-per-node 16 t.py", "16 per node");
    refused("dgx-h100", "torchrun --nproc-per-node none t.py", "none");
    refused("dgx-h100", "torchrun --nproc-per-node 8", "which script");
    refused("dgx-h100", "torchrun --no-such-option 3 t.py", "no option");
    refused("dgx-h100", "mpirun python t.py", "how many ranks");
}

#[test]
fn each_rank_gets_its_place() {
    let launch = launch("dgx-h100:4", "torchrun --nproc-per-node 8 t.py").unwrap();
    let world = launch.world.unwrap();
    let present = world.present(&"0,13".parse().unwrap()).unwrap();
    let meeting = Meeting { port: 4711, board: "/b".into(), present };
    let variables = variables(&world, Rank(13), &meeting);
    let check = |name: &str, expect: &str| {
        let found =
            variables.iter().find(|(found, _)| *found == name).map(|(_, value)| value.to_str().unwrap());
        assert_eq!(found, Some(expect), "{name}");
    };
    check("RANK", "13");
    check("WORLD_SIZE", "32");
    check("LOCAL_RANK", "5");
    check("LOCAL_WORLD_SIZE", "8");
    check("GROUP_RANK", "1");
    check("GROUP_WORLD_SIZE", "4");
    check("MASTER_PORT", "4711");
    check("TROMPE_RANKS", "0,13");
    assert!(world.present(&"32".parse().unwrap()).is_err());
}


# Appended in the guest's memory: a test starts a hundred listeners and waits for the last of them. Where the clock is virtual no time passes between
# them, and the last may be the first to run; after a sleep all have.
eval "all_have_run_$(declare -f wait_local_port_listen)"
wait_local_port_listen()
{
	sleep 0.01
	all_have_run_wait_local_port_listen "$@"
}

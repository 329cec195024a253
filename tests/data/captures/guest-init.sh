#!/bin/bash
# throw-away guest: two hosts a, b, a router r in the middle, two paths
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs tmp /run; mount -t tmpfs tmp /tmp
mkdir -p /run/cell /run/netns
mount -t hostfs -o /proc/self/cwd none /run/cell
cd /run/cell
. ./settings
for n in a b r; do ip netns add $n; done
for n in a b r; do
  ip netns exec $n bash -c 'echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6; ip link set lo up'
done
ip netns exec r bash -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
for p in 1 2; do
  ip link add name p$p netns a type veth peer name a$p netns r
  ip link add name p$p netns b type veth peer name b$p netns r
  ip -n a addr add 10.$p.1.1/24 dev p$p; ip -n r addr add 10.$p.1.2/24 dev a$p
  ip -n b addr add 10.$p.2.1/24 dev p$p; ip -n r addr add 10.$p.2.2/24 dev b$p
  ip -n a link set p$p up; ip -n b link set p$p up; ip -n r link set a$p up; ip -n r link set b$p up
  for x in "a p$p" "b p$p" "r a$p" "r b$p"; do set -- $x; ip netns exec $1 ethtool -K $2 tso off gso off gro off tx off rx off sg off >/dev/null; done
  ip -n a route add 10.$p.2.0/24 via 10.$p.1.2; ip -n b route add 10.$p.1.0/24 via 10.$p.2.2
  tc -n r qdisc add dev b$p root handle 1: netem delay ${DELAY} ${LOSS} limit 100000 rate ${RATE}
  tc -n r qdisc add dev a$p root handle 1: netem delay ${DELAY} limit 100000 rate ${RATE}
done
# neighbours: permanent, so that no ARP crosses
mac() { ip -n $1 -br link show $2 | awk '{print $3}'; }
for p in 1 2; do
  ip -n a neigh replace 10.$p.1.2 lladdr $(mac r a$p) dev p$p nud permanent
  ip -n r neigh replace 10.$p.1.1 lladdr $(mac a p$p) dev a$p nud permanent
  ip -n b neigh replace 10.$p.2.2 lladdr $(mac r b$p) dev p$p nud permanent
  ip -n r neigh replace 10.$p.2.1 lladdr $(mac b p$p) dev b$p nud permanent
done
[ -n "$SYSCTL" ] && for n in a b; do for s in $SYSCTL; do ip netns exec $n sysctl -qw $s; done; done
if [ "$PROTO" = mptcp ]; then
  ip netns exec a ip mptcp limits set subflow 2 add_addr_accepted 2
  ip netns exec b ip mptcp limits set subflow 2 add_addr_accepted 2
  ip netns exec a ip mptcp endpoint add 10.2.1.1 dev p2 subflow fullmesh
  ip netns exec b ip mptcp endpoint add 10.2.2.1 dev p2 signal
fi
sleep 1
pids=
for x in a b; do for p in 1 2; do
  ip netns exec $x tcpdump -Z root -B 8192 -i p$p --time-stamp-precision=nano -U -w - > $x-p$p.pcap 2> $x-p$p.log & pids="$pids $!"
done; done
sleep 1
ip netns exec b python3 traffic.py receive > receive.log 2>&1 & rx=$!
sleep 3
ip netns exec a python3 traffic.py send > send.log 2>&1 & tx=$!
[ -n "$FAULT" ] && eval "$FAULT"
wait $tx; echo "send $?" ; wait $rx; echo "receive $?"
sleep 2
cat /proc/net/sctp/snmp > snmp.txt 2>/dev/null
pkill -INT tcpdump; sleep 1
python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'

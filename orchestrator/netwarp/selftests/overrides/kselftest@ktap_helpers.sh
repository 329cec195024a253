
# packetdrill finds the edge of a tick by asking times(2) again and again, without a pause: on the virtual clock no tick
# would ever come. Here a program that spins on a clock is put to sleep, 1 us at first and at most 1 ms.
case $0 in
*/ksft_runner.sh) [ ! -e /run/own/program-clock.so ] || export LD_PRELOAD=/run/own/program-clock.so ;;
esac

#!/bin/sh
# usage, inside the kernel tier's machine: pingpong.sh
#
# rc_pingpong and rdma-core's ibv_rc_pingpong, each as server and as client of each, over Soft-RoCE: polling with messages
# of one page, and sleeping with messages of many packets. Ends with a summary in the form that tally.awk counts.
set -u
passed=0 failed=0

listening() { # the port that both use unless told, 18515, in the kernel's tables
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '$2 ~ /:4853$/ && $4 == "0A" { found = 1 } END { exit !found }'
}

pair() { # SERVER CLIENT OPTION...
    server=$1 client=$2
    shift 2
    # Index 1 is the IPv4 address.
    timeout 60 "$server" -d rxe0 -g 1 "$@" >/tmp/server 2>&1 &
    process=$!
    tries=200
    until listening || ! kill -0 $process 2>/dev/null || [ $((tries -= 1)) -le 0 ]; do sleep 0.05; done
    timeout 60 "$client" -d rxe0 -g 1 "$@" 127.0.0.1 >/tmp/client 2>&1
    client_status=$?
    wait $process
    server_status=$?
    # Both programs end with how much went over the wire, and for how many exchanges.
    if [ $client_status -eq 0 ] && [ $server_status -eq 0 ] &&
        grep -q '^[0-9]* bytes in ' /tmp/server && grep -q '^100 iters in ' /tmp/client; then
        passed=$((passed + 1))
        echo "$server <- $client $*: $(tail -n 1 /tmp/client)"
    else
        failed=$((failed + 1))
        echo "$server <- $client $*: the server ended with $server_status, the client with $client_status"
        sed 's/^/  server: /' /tmp/server
        sed 's/^/  client: /' /tmp/client
    fi
}

for server in rc_pingpong ibv_rc_pingpong; do
    for client in rc_pingpong ibv_rc_pingpong; do
        pair "$server" "$client" -n 100
        pair "$server" "$client" -n 100 -e -s 100000
    done
done
echo "test cases: $((passed + failed)) | $passed passed | $failed failed"
[ $failed -eq 0 ]

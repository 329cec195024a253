import os, socket, struct, sys, time
who = sys.argv[1]
env = dict(l.strip().split('=',1) for l in open('settings') if '=' in l)
env = {k: v.strip('"') for k, v in env.items()}
proto = env['PROTO']; multi = env.get('MULTI') == '1'; size = int(env['SIZE']); total = int(env['TOTAL'])
PORT = 5001
def sa(a, port): return struct.pack('=H', socket.AF_INET) + struct.pack('!H', port) + socket.inet_aton(a) + b'\0'*8
def make():
    if proto == 'sctp':
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)
    else:
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 6 if proto == 'tcp' else 262)
    return s
s = make()
paths = (1, 2) if multi else (1,)
if env.get('BUF'):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(env['BUF'])); s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, int(env['BUF']))
if who == 'receive':
    if proto == 'sctp':
        s.setsockopt(132, 100, b''.join(sa(f'10.{p}.2.1', PORT) for p in paths))
    else:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(('0.0.0.0', PORT))
    s.listen(1)
    c, _ = s.accept()
    got = 0
    while True:
        d = c.recv(65536)
        if not d: break
        got += len(d)
    print('received', got, time.time_ns())
else:
    if proto == 'sctp':
        s.setsockopt(132, 100, b''.join(sa(f'10.{p}.1.1', 0) for p in paths))
        s.setsockopt(132, 110, b''.join(sa(f'10.{p}.2.1', PORT) for p in paths))
        if env.get('NODELAY'): s.setsockopt(132, 3, struct.pack('i', 1))
    else:
        s.bind(('10.1.1.1', 0))
        if env.get('CC'): s.setsockopt(6, 13, env['CC'].encode())
        s.connect(('10.1.2.1', PORT))
    data = bytes(range(256)) * (size // 256 + 1)
    data = data[:size]
    sent = 0
    while sent < total:
        n = s.send(data); sent += n
    print('sent', sent)
    if proto == 'tcp':
        info = s.getsockopt(6, 11, 256); print('tcp_info', info.hex())
    s.close()

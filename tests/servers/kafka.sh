#!/usr/bin/env bash
# A Kafka broker of one node (KRaft) on loopback for tests.   kafka.sh DIR PORT
# PORT + 1 is the controller's; PORT + 2 takes clients by SASL (PLAIN; user clink, password secret); PORT + 3 by TLS and SASL
# (the same), with a certificate that DIR/tls/ca.pem vouches for, made by openssl.
# Fetches the pinned jars of kafka.jars once (54 MB, kept under ${XDG_CACHE_HOME:-~/.cache}/clink/kafka), starts the broker with
# everything it writes in DIR, and says when it answers; the broker is the process that this script becomes. Needs java.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$1 port=$2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/clink/kafka
maven=${MAVEN_MIRROR:-https://repo.maven.apache.org/maven2}

command -v java >/dev/null || { echo "kafka.sh: there is no java" >&2; exit 3; }
mkdir -p "$cache/lib" "$dir"
if [ ! -f "$cache/complete" ] || ! cmp -s "$cache/complete" "$here/kafka.jars"; then
  exec 9>"$cache/lock"; flock 9
  while read -r sum path; do
    jar=$cache/lib/${path##*/}
    [ -f "$jar" ] && echo "$sum  $jar" | sha256sum -c --status && continue
    printf 'url = "%s/%s"\noutput = "%s"\n' "$maven" "$path" "$jar"
  done <"$here/kafka.jars" >"$cache/fetch"
  [ -s "$cache/fetch" ] && { curl -fsSL --retry 3 --parallel --parallel-max 8 -K "$cache/fetch" || { echo "kafka.sh: no jars from $maven" >&2; exit 3; }; }
  sed -E "s|^([0-9a-f]+) .*/|\1  $cache/lib/|" "$here/kafka.jars" | sha256sum -c --status || { echo "kafka.sh: wrong checksum of a jar" >&2; exit 3; }
  cp "$here/kafka.jars" "$cache/complete"
  flock -u 9
fi
command -v openssl >/dev/null || { echo "kafka.sh: there is no openssl" >&2; exit 3; }
if [ ! -f "$dir/tls/server.pem" ]; then
  mkdir -p "$dir/tls"
  ( cd "$dir/tls"
    openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj "/CN=clink tests" -keyout ca.key -out ca.pem
    openssl req -newkey rsa:2048 -nodes -subj "/CN=localhost" -keyout server.key -out server.csr
    printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n' >san
    openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 3650 -extfile san -out server.crt
    cat server.key server.crt >server.pem.part && mv server.pem.part server.pem ) >"$dir/tls.log" 2>&1 || { cat "$dir/tls.log" >&2; exit 1; }
fi
cat >"$dir/server.properties" <<EOF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1)),SASL://127.0.0.1:$((port + 2)),TLS://127.0.0.1:$((port + 3))
advertised.listeners=PLAINTEXT://127.0.0.1:$port,SASL://127.0.0.1:$((port + 2)),TLS://127.0.0.1:$((port + 3))
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SASL_SSL
inter.broker.listener.name=PLAINTEXT
listener.name.sasl.sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_clink="secret";
listener.name.tls.sasl.enabled.mechanisms=PLAIN
listener.name.tls.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_clink="secret";
listener.name.tls.ssl.keystore.type=PEM
listener.name.tls.ssl.keystore.location=$dir/tls/server.pem
log.dirs=$dir/data
num.partitions=1
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
num.network.threads=1
num.io.threads=2
log.cleaner.enable=false
EOF
run=(java -Xmx384m -Xms128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$cache/lib/*")
if [ ! -d "$dir/data" ]; then
  id=$(python3 -c 'import base64,uuid;print(base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="))')
  "${run[@]}" kafka.tools.StorageTool format -t "$id" -c "$dir/server.properties" >"$dir/format.log" 2>&1
fi
exec "${run[@]}" kafka.Kafka "$dir/server.properties" >>"$dir/broker.log" 2>&1

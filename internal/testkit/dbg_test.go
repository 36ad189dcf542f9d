package testkit_test
import ("testing";"time";"os/exec"
amqp "github.com/rabbitmq/amqp091-go"
"github.com/idemkit/idem/internal/testkit")
func TestDbg(t *testing.T) {
	server := testkit.PrivateRabbitMQ(t)
	vhost := server.Vhost(t)
	declare(t, vhost, "kept")
	for i := 0; i < 8; i++ {
	out, _ := exec.Command("sh", "-c", "ls -l --full-time /tmp/idem-rabbitmq-*/mnesia/idem@localhost/quorum/idem@localhost; date; strings /tmp/idem-rabbitmq-*/mnesia/idem@localhost/quorum/idem@localhost/names.dets").CombinedOutput()
	t.Logf("%s", out)
	time.Sleep(500*time.Millisecond)
	}
	publish(t, vhost, "kept", "a")
	server.Kill()
	start := time.Now()
	server.Start(t)
	t.Log("up", time.Since(start))
	for i := 0; i < 3; i++ {
		conn, err := amqp.Dial(vhost.URL())
		if err != nil { t.Log(err); continue }
		ch, _ := conn.Channel()
		q, err := ch.QueueDeclarePassive("kept", true, false, false, false, nil)
		t.Log(time.Since(start), q, err)
		conn.Close()
		time.Sleep(time.Second)
	}
}

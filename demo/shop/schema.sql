-- Both databases take this text. Times are milliseconds since 1970, as neither has a type that the other knows.
CREATE TABLE IF NOT EXISTS shop_order (
  id              TEXT   NOT NULL PRIMARY KEY,
  item            TEXT   NOT NULL,
  quantity        BIGINT NOT NULL CHECK (quantity BETWEEN 1 AND 99),
  note            TEXT   NOT NULL,
  attachment      TEXT   NOT NULL,
  attachment_size BIGINT NOT NULL,
  attempt         BIGINT NOT NULL,
  created_at      BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS shop_order_item ON shop_order (item, created_at);
CREATE TABLE IF NOT EXISTS shop_account (
  name    TEXT   NOT NULL PRIMARY KEY,
  balance BIGINT NOT NULL CHECK (balance >= 0)
);
-- The gateway is somebody else's: it knows a refund by the key that it was sent with, and makes it once.
CREATE TABLE IF NOT EXISTS shop_gateway (
  outbound_key TEXT   NOT NULL PRIMARY KEY,
  refund_no    TEXT   NOT NULL,
  order_no     TEXT   NOT NULL,
  amount       BIGINT NOT NULL,
  created_at   BIGINT NOT NULL
);
-- No unique key: that no order is paid twice within the window is the guard's to keep.
CREATE TABLE IF NOT EXISTS shop_payment (
  order_no        TEXT   NOT NULL,
  payment_channel TEXT   NOT NULL,
  amount          BIGINT NOT NULL,
  created_at      BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS shop_payment_order ON shop_payment (order_no, payment_channel);
-- The fence is the highest number that a holder of the lock has shown here; a write with a lower one comes too late.
CREATE TABLE IF NOT EXISTS shop_stock (
  sku   TEXT   NOT NULL PRIMARY KEY,
  stock BIGINT NOT NULL,
  fence BIGINT NOT NULL
);
-- An order's event, written with the order and deleted with the points: what is here is still to be granted.
CREATE TABLE IF NOT EXISTS shop_outbox (
  order_id   TEXT   NOT NULL PRIMARY KEY,
  points     BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  due_at     BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS shop_outbox_due ON shop_outbox (due_at);
-- No unique key: that an order's points are granted once is the consumer's to keep.
CREATE TABLE IF NOT EXISTS shop_points (
  order_id   TEXT   NOT NULL,
  points     BIGINT NOT NULL,
  granted_at BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS shop_points_order ON shop_points (order_id);
INSERT INTO shop_account (name, balance) VALUES ('alice', 1000), ('bob', 1000), ('carol', 1000) ON CONFLICT (name) DO NOTHING;

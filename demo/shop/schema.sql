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
INSERT INTO shop_account (name, balance) VALUES ('alice', 1000), ('bob', 1000), ('carol', 1000) ON CONFLICT (name) DO NOTHING;

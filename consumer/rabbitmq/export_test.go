package rabbitmq

// Short is how a level's delay stands in its queue's name.
var Short = short

// Package server is the only wiring: it reads the settings from the environment, opens the stores that they name, and gives an application the
// routes, metrics, middleware and graceful stop that run beside a guard.
//
//	config, err := server.Load(nil)
//	backends, err := server.Open(ctx, config, logger)
//	defer backends.Close()
//	metrics := server.NewMetrics()
//	guard, err := web.New(config.Web(backends, metrics, logger))
//	r := chi.NewRouter()
//	r.Use(config.Middleware(logger)...)
//	r.Group(backends.Operations(guard, metrics))
//	r.Mount("/idem", guard.Routes())
//	err = server.Serve(ctx, config, r, guard, logger)
//
// Nothing here is needed to use the kit: an application that opens its stores itself gives them to web.New and leaves this package out.
package server

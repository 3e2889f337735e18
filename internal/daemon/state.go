package daemon

import (
	"context"

	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

func stateGet(_ context.Context, s *session, p *rpcapi.StateParams) (any, error) {
	if p.Key == "" {
		return nil, badParams("key is required")
	}
	return s.state.Scope(p.TenantID).Get(p.Key), nil
}

func stateSet(_ context.Context, s *session, p *rpcapi.StateParams) (any, error) {
	if p.Key == "" {
		return nil, badParams("key is required")
	}
	if err := s.state.Scope(p.TenantID).Set(p.Key, p.Value); err != nil {
		return nil, badParams("%v", err)
	}
	return rpcapi.StateOK, nil
}

func stateExists(_ context.Context, s *session, p *rpcapi.StateParams) (any, error) {
	if p.Key == "" {
		return nil, badParams("key is required")
	}
	return s.state.Scope(p.TenantID).Exists(p.Key), nil
}

func stateKeys(_ context.Context, s *session, p *rpcapi.StateParams) (any, error) {
	return s.state.Scope(p.TenantID).Keys(), nil
}

func stateSnapshot(_ context.Context, s *session, p *rpcapi.StateParams) (any, error) {
	return s.state.Scope(p.TenantID).Snapshot(), nil
}

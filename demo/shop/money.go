package shop

import (
	"context"
	"net/http"

	"github.com/idemkit/idem"
)

func (s *shop) postRefund(w http.ResponseWriter, r *http.Request) {
	body, err := readObject(w, r, "refundNo", "orderNo", "amount")
	if err != nil {
		s.invalid(w, err)
		return
	}
	asked := refund{RefundNo: body.text("refundNo", maxName), OrderNo: body.text("orderNo", maxName), Amount: body.whole("amount", 1, maxAmount)}
	if len(body.wrong) > 0 {
		s.unprocessable(w, body.wrong)
		return
	}
	switch made, status, err := s.refund(r.Context(), asked); {
	case err != nil:
		s.fail(w, r, err)
	case status != 0:
		s.writeProblem(w, status, struck, nil)
	default:
		s.writeJSON(w, http.StatusCreated, made)
	}
}

// refund goes to the gateway with a key that is the same on every attempt. An attempt that is to fail does so before; one in which
// the process is to end does so after, so that nobody but the gateway knows.
func (s *shop) refund(ctx context.Context, asked refund) (refund, int, error) {
	claim, f := idem.FromContext(ctx), faultsFrom(ctx)
	if err := f.wait(ctx); err != nil {
		return refund{}, 0, err
	}
	if f.fail != "exit" {
		if status := s.strike(ctx); status != 0 {
			return refund{}, status, nil
		}
	}
	made, err := s.storage.send(ctx, claim.OutboundKey(), asked)
	if err != nil {
		return refund{}, 0, err
	}
	made.Attempt = claim.Attempt
	return made, s.strike(ctx), nil
}

func (s *shop) postTransfer(w http.ResponseWriter, r *http.Request) {
	body, err := readObject(w, r, "from", "to", "amount")
	if err != nil {
		s.invalid(w, err)
		return
	}
	t := transfer{From: body.text("from", maxName), To: body.text("to", maxName), Amount: body.whole("amount", 1, maxAmount)}
	if t.From != "" && t.From == t.To {
		body.wrong.add("to", "must be another account than from")
	}
	if len(body.wrong) > 0 {
		s.unprocessable(w, body.wrong)
		return
	}
	switch wrong, status, err := s.transfer(r.Context(), t); {
	case err != nil:
		s.fail(w, r, err)
	case len(wrong) > 0:
		s.unprocessable(w, wrong)
	case status != 0:
		s.writeProblem(w, status, struckEach, nil)
	default:
		s.writeJSON(w, http.StatusCreated, t)
	}
}

// transfer works in the transaction that holds its claim, and so keeps it open while it is slow. The accounts are locked after that.
func (s *shop) transfer(ctx context.Context, t transfer) (complaints, int, error) {
	tx, err := s.storage.guarded(ctx)
	if err != nil {
		return nil, 0, err
	}
	if err := faultsFrom(ctx).wait(ctx); err != nil {
		return nil, 0, err
	}
	wrong, err := s.storage.move(ctx, tx, t)
	if err != nil || len(wrong) > 0 {
		return wrong, 0, err
	}
	return nil, s.strike(ctx), nil
}

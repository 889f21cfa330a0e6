// WEBHOOK_SECRET=... PORT=4000 go run receive.go verify.go
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"time"
)

var (
	secret  = os.Getenv("WEBHOOK_SECRET")
	handled sync.Map // store these in a database table
)

func answer(headers http.Header, body []byte) int {
	if !IsSigned(secret, body, headers.Get("X-SVC-Signature"), headers.Get("X-SVC-Signature-Previous")) {
		return http.StatusUnauthorized
	}
	var event struct {
		Event       string     `json:"event"`
		EventID     string     `json:"event_id"`
		DeliveredAt *time.Time `json:"delivered_at"`
	}
	if json.Unmarshal(body, &event) != nil {
		return http.StatusBadRequest
	}
	if event.DeliveredAt != nil && time.Since(*event.DeliveredAt).Abs() > 5*time.Minute {
		return http.StatusUnauthorized
	}
	if _, known := handled.LoadOrStore(event.EventID, true); known {
		return http.StatusOK
	}
	fmt.Println(event.Event, event.EventID) // put the event into your queue
	return http.StatusNoContent
}

func main() {
	if secret == "" {
		log.Fatal("Set WEBHOOK_SECRET to the subscription's secret.")
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "4000"
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, http.HandlerFunc(
		func(response http.ResponseWriter, request *http.Request) {
			body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, 1<<20))
			if err != nil {
				response.WriteHeader(http.StatusBadRequest)
				return
			}
			response.WriteHeader(answer(request.Header, body))
		})))
}

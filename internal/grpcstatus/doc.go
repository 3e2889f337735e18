// Package grpcstatus reads how a gRPC call ended, which its HTTP status does not tell: the fields grpc-status and grpc-message behind the
// body of its answer, or in the head of an answer that has no body.
//
// The definition is "gRPC over HTTP2" (Responses) and the list of status codes, both in the documents of the gRPC project.
package grpcstatus

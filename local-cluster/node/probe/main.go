// The one program that pods of the node's own run: nothing (what holds a pod's namespaces), a server, a client, a writer and readers of volumes. Static, so that
// its image is one file.
package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		wait()
		return
	}
	switch os.Args[1] {
	case "serve":
		serve()
	case "get":
		os.Exit(get(os.Args[2]))
	case "write":
		check(write(os.Args[2], os.Args[3]))
	case "read":
		check(read(os.Args[2]))
	case "digest":
		check(digest(os.Args[2]))
	case "open":
		_, err := os.Open(os.Args[2])
		check(err)
	default:
		fmt.Fprintln(os.Stderr, "usage: probe | probe serve | probe get <URL> | probe write <path> <text> | probe read <path> | probe digest <path> | probe open <path>")
		os.Exit(64)
	}
}

// As the first process of a pod it also collects the processes that have no parent left.
func wait() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for {
		select {
		case <-ended:
			return
		case <-children:
			for {
				if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
					break
				}
			}
		}
	}
}

func serve() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "served") })
	if err := http.ListenAndServe(":8080", nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A Service may take a moment to be reachable.
func get(url string) int {
	client := http.Client{Timeout: 2 * time.Second}
	for tries := 0; tries < 30; tries++ {
		response, err := client.Get(url)
		if err == nil {
			body, _ := io.ReadAll(response.Body)
			fmt.Print(string(body))
			return 0
		}
		fmt.Fprintln(os.Stderr, err)
		time.Sleep(time.Second)
	}
	return 1
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A file is made; a device is there.
func write(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(text + "\n"); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return file.Close()
}

// The first line.
func read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	line, err := bufio.NewReader(file).ReadString('\n')
	fmt.Print(line)
	return err
}

// Of all bytes, SHA-256.
func digest(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return err
	}
	fmt.Printf("%x\n", hash.Sum(nil))
	return nil
}

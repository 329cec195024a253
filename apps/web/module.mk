# web-server and web-client: pages over sender's and receiver's transports; static like these
WEB_SRC := web/web_config.c web/web_frame.c web/web_page.c web/web_socket.c $(TRAFFIC_SRC)
PROGRAMS += web-server web-client
web-server_SRC := web/web_server.c $(WEB_SRC)
web-server_LDFLAGS := -static
web-server_LIBS := -lsctp
web-server_SANLIBS := -lsctp
web-client_SRC := web/web_client.c web/web_objects.c web/web_requests.c $(WEB_SRC)
web-client_LDFLAGS := -static
web-client_LIBS := -lsctp
web-client_SANLIBS := -lsctp
SANITISED += web-server web-client

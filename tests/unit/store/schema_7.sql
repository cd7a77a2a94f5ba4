-- A database of schema 7: a campaign without a budget, its first layer done, its second stopped after 6 of 12 trials.
PRAGMA application_id = 1212763220;
PRAGMA user_version = 7;
BEGIN TRANSACTION;
CREATE TABLE campaigns (
  uuid TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  network TEXT NOT NULL,
  settings TEXT NOT NULL,
  created REAL NOT NULL
, budget TEXT, state TEXT NOT NULL DEFAULT 'created', detail TEXT NOT NULL DEFAULT '', failure TEXT NOT NULL DEFAULT '', finished REAL, spent_seconds REAL NOT NULL DEFAULT 0 CHECK (spent_seconds >= 0)) STRICT;
INSERT INTO "campaigns" VALUES('6890bb5a742a4b8cb36b30fed24f0e8f','two','{"layers":[{"macs":0,"nodes":["a"],"reason":"","workload":"conv2d:n=1,ci=32,h=7,w=7,co=64,k=1x1,s=1x1,p=0x0"},{"macs":0,"nodes":["b","c"],"reason":"","workload":"conv2d:n=1,ci=16,h=8,w=8,co=16,k=3x3,s=1x1,p=1x1"},{"macs":0,"nodes":["d"],"reason":"dilation 2x2","workload":""}],"name":"two","others":{"Relu":1}}','{"batch":4,"board":"table:plain","checks":"compiler","limit_seconds":null,"number":1,"orders":null,"repeat":1,"seed":4,"space_kind":"autotvm","trials":12,"tuner":"random","tuner_options":{}}',1.79538547544672441483e+09,NULL,'created','','',NULL,0.0);
CREATE TABLE remeasurements (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  purpose TEXT NOT NULL CHECK (purpose IN ('drift', 'confirmation')),
  round INTEGER NOT NULL CHECK (round >= 0),
  ordinal INTEGER NOT NULL,
  microseconds REAL NOT NULL CHECK (microseconds > 0),
  board TEXT NOT NULL,
  PRIMARY KEY (run, purpose, round, ordinal)
) STRICT, WITHOUT ROWID;
CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  uuid TEXT NOT NULL UNIQUE,
  -- what the run is: fixed when it is created, compared when it is resumed
  workload TEXT NOT NULL,
  workload_spec TEXT NOT NULL,
  board TEXT NOT NULL,
  parameters TEXT NOT NULL,
  isa TEXT NOT NULL,
  bitstream TEXT NOT NULL,
  clock_hz INTEGER NOT NULL CHECK (clock_hz > 0),
  tuner TEXT NOT NULL,
  tuner_options TEXT NOT NULL,
  seed INTEGER NOT NULL,
  checks TEXT NOT NULL,
  space_kind TEXT NOT NULL,
  orders INTEGER NOT NULL CHECK (orders > 0),
  space TEXT NOT NULL,
  space_size INTEGER NOT NULL,
  budget INTEGER NOT NULL,
  batch INTEGER NOT NULL CHECK (batch > 0),
  repeat INTEGER NOT NULL CHECK (repeat > 0),
  number INTEGER NOT NULL DEFAULT 1 CHECK (number > 0),
  limit_seconds REAL NOT NULL CHECK (limit_seconds > 0),
  output_elements INTEGER NOT NULL CHECK (output_elements > 0),
  macs INTEGER NOT NULL,
  bound_cycles INTEGER NOT NULL,
  -- how it went
  state TEXT NOT NULL,
  detail TEXT NOT NULL,
  failure TEXT NOT NULL,
  created REAL NOT NULL,
  finished REAL,
  versions TEXT NOT NULL,
  campaign TEXT REFERENCES campaigns (uuid)
) STRICT;
INSERT INTO "runs" VALUES(1,'2c76a54d4ab14783b9b63b27d4992f79','conv2d:n=1,ci=32,h=7,w=7,co=64,k=1x1,s=1x1,p=0x0','{"batch":1,"bias":false,"clip":[0,127],"groups":1,"height":7,"in_channels":32,"input_dilation":[1,1],"kernel":[1,1],"name":"conv2d:n=1,ci=32,h=7,w=7,co=64,k=1x1,s=1x1,p=0x0","operator":"conv2d","out_channels":64,"padding":[0,0],"shift":8,"stride":[1,1],"width":7}','table:plain','1x16_i8w8a32_15_15_18_17','A','plainplainplainplainplainplainplainplain',100000000,'random','{}',4,'compiler','autotvm',4,'tile_b=1 tile_h=1,7 tile_w=1,7 tile_ci=1,2 tile_co=1,2,4 oc_nthread=1,2 h_nthread=1,2 loop_order=1,2,3,4',384,12,4,1,1,0.05,3136,100352,844,'finished','','',1.79538547547641968724e+09,1.79538547701506066324e+09,'{"hilt":"0.1.0","python":"3.11"}','6890bb5a742a4b8cb36b30fed24f0e8f');
INSERT INTO "runs" VALUES(2,'afa0134379044328b290395f45f06e4d','conv2d:n=1,ci=16,h=8,w=8,co=16,k=3x3,s=1x1,p=1x1','{"batch":1,"bias":false,"clip":[0,127],"groups":1,"height":8,"in_channels":16,"input_dilation":[1,1],"kernel":[3,3],"name":"conv2d:n=1,ci=16,h=8,w=8,co=16,k=3x3,s=1x1,p=1x1","operator":"conv2d","out_channels":16,"padding":[1,1],"shift":8,"stride":[1,1],"width":8}','table:plain','1x16_i8w8a32_15_15_18_17','A','plainplainplainplainplainplainplainplain',100000000,'random','{}',4,'compiler','autotvm',4,'tile_b=1 tile_h=1,2,4,8 tile_w=1,2,4,8 tile_ci=1 tile_co=1 oc_nthread=1,2 h_nthread=1,2 loop_order=1,2,3,4',256,12,4,1,1,0.05,1024,147456,576,'stopped','','',1.79538547705932426449e+09,1.79538547869076490397e+09,'{"hilt":"0.1.0","python":"3.11"}','6890bb5a742a4b8cb36b30fed24f0e8f');
CREATE TABLE slices (
  campaign TEXT NOT NULL REFERENCES campaigns (uuid) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL CHECK (ordinal >= 0),
  workload TEXT NOT NULL,
  trials INTEGER NOT NULL CHECK (trials > 0),
  expected_gain REAL NOT NULL,
  PRIMARY KEY (campaign, ordinal)
) STRICT, WITHOUT ROWID;
CREATE TABLE trials (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL CHECK (ordinal >= 0),
  -- facts about the configuration: the same whenever the same run is made on the same deterministic board
  "index" INTEGER NOT NULL,
  knobs TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome <> 'board_lost'),
  reason TEXT NOT NULL,
  cycles INTEGER,
  microseconds REAL,
  repeats TEXT NOT NULL,
  compared INTEGER,
  mismatched INTEGER,
  first INTEGER,
  largest_error INTEGER,
  output_elements INTEGER NOT NULL,
  -- circumstances: where and when
  board TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  seconds TEXT NOT NULL,
  recorded_at REAL NOT NULL,
  PRIMARY KEY (run, ordinal),
  CHECK (outcome <> 'ok' OR (microseconds IS NOT NULL AND microseconds > 0))
) STRICT, WITHOUT ROWID;
INSERT INTO "trials" VALUES(1,0,278,'{"tile_b":1,"tile_h":1,"tile_w":7,"tile_ci":2,"tile_co":2,"oc_nthread":2,"h_nthread":2,"loop_order":3}','ok','',79403,794.03,'[794.03]',3136,0,NULL,0,3136,'table:plain',0,'{}',1.79538547694849419597e+09);
INSERT INTO "trials" VALUES(1,1,362,'{"tile_b":1,"tile_h":1,"tile_w":7,"tile_ci":1,"tile_co":1,"oc_nthread":2,"h_nthread":2,"loop_order":4}','ok','',83450,834.5,'[834.5]',3136,0,NULL,0,3136,'table:plain',0,'{}',1.79538547696008658413e+09);
INSERT INTO "trials" VALUES(1,2,338,'{"tile_b":1,"tile_h":1,"tile_w":7,"tile_ci":1,"tile_co":1,"oc_nthread":1,"h_nthread":2,"loop_order":4}','ok','',62554,625.54,'[625.54]',3136,0,NULL,0,3136,'table:plain',0,'{}',1.79538547696710705753e+09);
INSERT INTO "trials" VALUES(1,3,196,'{"tile_b":1,"tile_h":1,"tile_w":1,"tile_ci":2,"tile_co":1,"oc_nthread":1,"h_nthread":1,"loop_order":3}','ok','',80235,802.35,'[802.35]',3136,0,NULL,0,3136,'table:plain',0,'{}',1.79538547696917676925e+09);
INSERT INTO "trials" VALUES(1,4,361,'{"tile_b":1,"tile_h":7,"tile_w":1,"tile_ci":1,"tile_co":1,"oc_nthread":2,"h_nthread":2,"loop_order":4}','rejected','thread_split',NULL,NULL,'[]',NULL,NULL,NULL,NULL,0,'',0,'{}',1.79538547697223162648e+09);
INSERT INTO "trials" VALUES(1,5,374,'{"tile_b":1,"tile_h":1,"tile_w":7,"tile_ci":2,"tile_co":2,"oc_nthread":2,"h_nthread":2,"loop_order":4}','ok','',79403,794.03,'[794.03]',3136,0,NULL,0,3136,'table:plain',0,'{}',1.79538547697565150263e+09);
INSERT INTO "trials" VALUES(1,6,372,'{"tile_b":1,"tile_h":1,"tile_w":1,"tile_ci":2,"tile_co":2,"oc_nthread":2,"h_nthread":2,"loop_order":4}','ok','',73852,738.52,'[738.52]',3136,0,NULL,0,3136,'table:plain',0,'{}',1.79538547699460387225e+09);
INSERT INTO "trials" VALUES(1,7,31,'{"tile_b":1,"tile_h":7,"tile_w":7,"tile_ci":2,"tile_co":1,"oc_nthread":2,"h_nthread":1,"loop_order":1}','wrong_answer','3 differ',NULL,NULL,'[]',3136,3,867,7,3136,'',0,'{}',1795385477.00242);
INSERT INTO "trials" VALUES(1,8,174,'{"tile_b":1,"tile_h":1,"tile_w":7,"tile_ci":2,"tile_co":1,"oc_nthread":2,"h_nthread":2,"loop_order":2}','ok','',48435,484.35,'[484.35]',3136,0,NULL,0,3136,'table:plain',0,'{}',1.79538547700611305236e+09);
INSERT INTO "trials" VALUES(1,9,233,'{"tile_b":1,"tile_h":7,"tile_w":1,"tile_ci":1,"tile_co":4,"oc_nthread":2,"h_nthread":1,"loop_order":3}','rejected','thread_split',NULL,NULL,'[]',NULL,NULL,NULL,NULL,0,'',0,'{}',1.79538547699069285391e+09);
INSERT INTO "trials" VALUES(1,10,108,'{"tile_b":1,"tile_h":1,"tile_w":1,"tile_ci":2,"tile_co":2,"oc_nthread":1,"h_nthread":1,"loop_order":2}','ok','',53026,530.26,'[530.26]',3136,0,NULL,0,3136,'table:plain',0,'{}',1.7953854770079751015e+09);
INSERT INTO "trials" VALUES(1,11,144,'{"tile_b":1,"tile_h":1,"tile_w":1,"tile_ci":1,"tile_co":1,"oc_nthread":1,"h_nthread":2,"loop_order":2}','bus_error','DECERR at 0x1000',NULL,NULL,'[]',NULL,NULL,NULL,NULL,3136,'',1,'{}',1.79538547701121783259e+09);
INSERT INTO "trials" VALUES(2,0,185,'{"tile_b":1,"tile_h":2,"tile_w":4,"tile_ci":1,"tile_co":1,"oc_nthread":2,"h_nthread":2,"loop_order":3}','rejected','thread_split',NULL,NULL,'[]',NULL,NULL,NULL,NULL,0,'',0,'{}',1.79538547861425971984e+09);
INSERT INTO "trials" VALUES(2,1,241,'{"tile_b":1,"tile_h":2,"tile_w":1,"tile_ci":1,"tile_co":1,"oc_nthread":2,"h_nthread":2,"loop_order":4}','rejected','thread_split',NULL,NULL,'[]',NULL,NULL,NULL,NULL,0,'',0,'{}',1.795385478618452549e+09);
INSERT INTO "trials" VALUES(2,2,225,'{"tile_b":1,"tile_h":2,"tile_w":1,"tile_ci":1,"tile_co":1,"oc_nthread":1,"h_nthread":2,"loop_order":4}','ok','',25144,251.44,'[251.44]',1024,0,NULL,0,1024,'table:plain',0,'{}',1.79538547863862586024e+09);
INSERT INTO "trials" VALUES(2,3,130,'{"tile_b":1,"tile_h":4,"tile_w":1,"tile_ci":1,"tile_co":1,"oc_nthread":1,"h_nthread":1,"loop_order":3}','ok','',48414,484.14,'[484.14]',1024,0,NULL,0,1024,'table:plain',0,'{}',1.79538547865091419218e+09);
INSERT INTO "trials" VALUES(2,4,240,'{"tile_b":1,"tile_h":1,"tile_w":1,"tile_ci":1,"tile_co":1,"oc_nthread":2,"h_nthread":2,"loop_order":4}','rejected','thread_split',NULL,NULL,'[]',NULL,NULL,NULL,NULL,0,'',0,'{}',1.79538547862913584708e+09);
INSERT INTO "trials" VALUES(2,5,249,'{"tile_b":1,"tile_h":2,"tile_w":4,"tile_ci":1,"tile_co":1,"oc_nthread":2,"h_nthread":2,"loop_order":4}','rejected','thread_split',NULL,NULL,'[]',NULL,NULL,NULL,NULL,0,'',0,'{}',1.79538547862918376925e+09);
CREATE UNIQUE INDEX trials_once ON trials (run, "index");
CREATE INDEX trials_outcome ON trials (run, outcome, reason);
CREATE INDEX trials_verified ON trials (run, microseconds, ordinal) WHERE outcome = 'ok' AND mismatched = 0 AND compared = output_elements AND output_elements > 0;
CREATE INDEX runs_campaign ON runs (campaign) WHERE campaign IS NOT NULL;
COMMIT;
